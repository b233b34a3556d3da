"""Work on published nights: compare them, score their lists with further measures, reproduce them."""
