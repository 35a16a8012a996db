"""What pages are made of: HTML, SVG and their elements."""
