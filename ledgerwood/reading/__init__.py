"""What is done with a released model: post-processing, which costs nothing."""
