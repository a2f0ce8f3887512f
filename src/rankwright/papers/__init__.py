"""Results of the papers, recomputed: reproduction protocols and simulations."""
