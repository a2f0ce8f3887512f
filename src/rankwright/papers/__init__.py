"""What the papers show, recomputed: reproduction protocols and simulations."""
