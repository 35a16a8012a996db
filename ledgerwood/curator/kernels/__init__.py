"""The loops over rows, in numba, and the sums that tables make with them. Only the curator imports them."""
