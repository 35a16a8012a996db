"""A federation over Flower: a transport of bytes, the two apps, and the simulation. Flower is imported when needed."""
