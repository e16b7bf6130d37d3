package relay

import (
	"context"
	"net/url"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// filledShown is the answer to a fill command: the intents that must give back their nonces.
type filledShown struct {
	Given []worker.Given `json:"given"`
}

// fill answers POST /admin/lanes/{chain}/{address}/{nonceKey}/fill. It records the command; the
// lane's holder reads and executes it.
func (o Operators) fill(r rest.Request) error {
	on, address, err := o.of(r)
	if err != nil {
		return err
	}
	text, err := url.PathUnescape(mux.Vars(r.Request)["nonceKey"])
	if err != nil {
		return rest.BadParameter("nonceKey", "the path is not well escaped")
	}
	key, err := chain.ParseNonceKey(text)
	if err != nil {
		return rest.BadParameter("nonceKey", "%v", err)
	}
	var nonces []uint64
	id := chain.Sequence{Chain: on, Sender: address, Key: key}
	return o.wished(r, func(in reading) []rest.Member {
		return []rest.Member{{Name: "nonces", Read: func() error {
			return in.List(func(int) error {
				n, err := in.Number()
				if nonces = append(nonces, n); len(nonces) > lane.BatchMax {
					return in.Wrong("names more than %d nonces", lane.BatchMax)
				}
				return err
			})
		}}}
	}, func(ctx context.Context, w word) (any, error) {
		if w.reason == "" {
			return nil, signer.ErrInvalid.Because("a reason is required")
		}
		meta := r.Meta()
		meta.Actor = w.actor
		given, err := o.Mender.Fill(ctx, id, nonces, w.reason, meta)
		return filledShown{given}, err
	})
}
