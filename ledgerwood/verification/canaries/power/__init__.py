"""How much an audit can show: worst rows, scores of canaries that share leaves, and what no attack can exceed."""
