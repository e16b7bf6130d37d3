package rpc

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/infra/chain/chaintest"
)

// finalCourt is a court on a chain of some blocks, each of which is final once the next exists.
func finalCourt(t *testing.T, n int, change func(*Config)) court {
	t.Helper()
	c := newCourt(t, n, change)
	for range 5 {
		mine(t, c.Chain)
	}
	return c
}

func blockText(b chain.Block) string {
	return fmt.Sprintf(`{"number":"0x%x","hash":"%s","parentHash":"%s","timestamp":"0x%x","transactions":[]}`, b.Number, b.Hash, b.Parent, b.Time)
}

// A block is final only when other endpoints agree with the reader.
func TestNoFinalBlockOnOneWord(t *testing.T) {
	for n := 1; n <= 4; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := finalCourt(t, n, nil)
			r, head := c.pool.Reader(), c.Head()
			c.liar.replace(t, "finalized", `"result":`+blockText(head))
			final, err := r.Final(t.Context(), head)
			if err != nil || final != head {
				t.Fatalf("the liar calls %+v final, %v", final, err)
			}
			err = r.ShownFinal(t.Context(), final)
			if n == 1 {
				if err != nil {
					t.Errorf("its word is all there is: %v", err)
				}
				return
			}
			if err == nil {
				t.Error("believed")
			}
			if c.pool.reader() == c.pool.endpoints[0] {
				t.Error("the liar is read from still")
			}
			if final, err = r.Final(t.Context(), head); err != nil || final.Number != head.Number-1 {
				t.Errorf("then: %+v, %v", final, err)
			}
			if err := r.ShownFinal(t.Context(), final); err != nil {
				t.Errorf("the truth: %v", err)
			}
		})
	}
}

// A final block of another branch is denied by endpoints with another block at its height.
func TestFinalBlockOfAnotherBranch(t *testing.T) {
	c := finalCourt(t, 3, nil)
	forged := c.Final()
	forged.Hash = chain.Hash{0xee}
	c.liar.replace(t, "finalized", `"result":`+blockText(forged))
	r := c.pool.Reader()
	final, err := r.Final(t.Context(), c.Head())
	if err != nil || final.Hash != forged.Hash {
		t.Fatalf("%+v, %v", final, err)
	}
	if err := r.ShownFinal(t.Context(), final); !errors.As(err, new(*outvoted)) {
		t.Errorf("it is not denied: %v", err)
	}
	if c.pool.Status()[0].Lies == 0 {
		t.Error("nobody is blamed")
	}
}

// With Confirmations set, other endpoints must have as many blocks on top.
func TestConfirmationsOnOneWord(t *testing.T) {
	const confirmations = 3
	c := finalCourt(t, 2, func(c *Config) { c.Confirmations = confirmations })
	r, head := c.pool.Reader(), c.Head()
	lagging := c.nodes[1]
	for lag, want := range map[uint64]bool{0: true, 1: false} {
		lagging.Set(chaintest.Faults{Lag: lag})
		c.read()
		final, err := r.Final(t.Context(), head)
		if err != nil || final.Number != head.Number-(confirmations-1) {
			t.Fatalf("%+v, %v", final, err)
		}
		if err := r.ShownFinal(t.Context(), final); (err == nil) != want {
			t.Errorf("the other is %d behind: %v", lag, err)
		}
	}
}

// An endpoint without finality support has no vote, if it has the block.
func TestFinalityThatIsNotOffered(t *testing.T) {
	c := finalCourt(t, 2, nil)
	c.liar.replace(t, "finalized", `"error":{"code":-39001,"message":"unknown block"}`)
	c.pool.moveTo(c.pool.reader(), c.pool.endpoints[1])
	r := c.pool.Reader()
	final, err := r.Final(t.Context(), c.Head())
	if err != nil || final != c.Final() {
		t.Fatalf("%+v, %v", final, err)
	}
	if err := r.ShownFinal(t.Context(), final); err != nil {
		t.Error(err)
	}
}
