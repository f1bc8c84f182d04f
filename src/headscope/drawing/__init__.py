"""Building blocks of figures: the theme, grids of cells, labels of points, columns of numbers."""
