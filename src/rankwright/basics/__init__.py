"""The basics that every room needs: errors, warnings, files, progress, random numbers, optional imports."""
