package budget

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/domain/event/eventtest"
)

// Whatever a log holds, reading it ends in a fact or an error.
func FuzzCodec(f *testing.F) { eventtest.Mutated(f, Codec()) }
