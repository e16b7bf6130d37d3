package chain

// Market is what gas cost in the newest blocks, as nodes tell it. Whoever reckons with
// it must expect anything in it: a node may lie, and two lists may differ in length.
type Market struct {
	// Head is the number of the newest block that it speaks of.
	Head uint64
	// Next is the base fee of the block after that one. It is nil on a chain that has
	// no base fee (before EIP-1559): there GasPrice is what nodes suggest to pay.
	Next     *Price
	GasPrice Price
	// Blocks are the newest ones, oldest first.
	Blocks []Paid
	// Suggested is the tip that nodes suggest, where the blocks show none.
	Suggested Price
}

// Paid is what was paid in one block.
type Paid struct {
	BaseFee Price
	// Full is how much of the block's gas was used: from 0 to 1, if the node is sane.
	Full float64
	// Tips are what was paid per gas above the base fee, at the percentiles that were
	// asked for, rising.
	Tips []Price
}
