"""What every room needs: errors and warnings, files, progress, random numbers, optional imports, array types."""
