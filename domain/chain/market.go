package chain

// Market is the price of gas in the newest blocks, as nodes report it. Users must accept any
// values: a node may lie, and the two lists may differ in length.
type Market struct {
	// Head is the number of the newest block included.
	Head uint64
	// Next is the base fee of the next block. It is nil on a chain without base fees (before
	// EIP-1559), where GasPrice is the nodes' suggested gas price.
	Next     *Price
	GasPrice Price
	// Blocks are the newest blocks, oldest first.
	Blocks []Paid
	// Suggested is the nodes' suggested tip, used if the blocks show none.
	Suggested Price
}

// Paid holds the prices paid in one block.
type Paid struct {
	BaseFee Price
	// Full is the used share of the block's gas: from 0 to 1 for a correct node.
	Full float64
	// Tips are the prices per gas paid above the base fee, at the requested percentiles, in
	// rising order.
	Tips []Price
}
