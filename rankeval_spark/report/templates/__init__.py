"""What the page is made of: template, style sheet and script."""
