"""Edge probing, after Tenney et al.: what the layers of a model tell of labelled spans and of pairs of them."""
