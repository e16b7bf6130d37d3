package chaintest

import (
	"fmt"
	"strings"
	"testing"
)

// A node returns the fee history of existing blocks for any requested range, also if it lags or
// claims more blocks.
func TestFeeHistory(t *testing.T) {
	c, _ := fresh(t, Rules{Finality: 2})
	n := c.Node("a")
	url := serve(t, n)
	for range 5 {
		mine(t, c)
	}
	for _, asked := range []struct {
		faults        Faults
		count, newest string
		oldest        string
		blocks        int // in the answer, which also has the next block's base fee
	}{
		{Faults{}, "0x3", "latest", "0x3", 3},
		{Faults{}, "0x3", "0x2", "0x0", 3},
		{Faults{}, "0xffff", "latest", "0x0", 6},
		{Faults{}, "0x1", "earliest", "0x0", 1},
		{Faults{Lag: 2}, "0x3", "latest", "0x1", 3},
		{Faults{Ahead: 3}, "0x3", "latest", "0x3", 3},
		{Faults{Ahead: 3}, "0x2", "0x7", "0x4", 2},
		{Faults{Ahead: 3, Lag: 9}, "0x2", "latest", "0x0", 1},
	} {
		n.Set(asked.faults)
		answer := ask(t, url, "eth_feeHistory", fmt.Sprintf(`[%q,%q,[50]]`, asked.count, asked.newest))
		prices := strings.Count(field(t, answer, "result", "baseFeePerGas"), "0x")
		if oldest := field(t, answer, "result", "oldestBlock"); oldest != asked.oldest || prices != asked.blocks+1 {
			t.Errorf("%+v: it tells of %d blocks from %s: %s", asked, prices-1, oldest, answer)
		}
	}
	if answer := ask(t, url, "eth_feeHistory", `["0x0","latest",[]]`); field(t, answer, "result", "gasUsedRatio") != "[]" {
		t.Error(answer)
	}
}
