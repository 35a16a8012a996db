"""The parts of pages: HTML, SVG and their elements."""
