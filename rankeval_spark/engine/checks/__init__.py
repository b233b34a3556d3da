"""What the workers count in the inputs while they evaluate them."""
