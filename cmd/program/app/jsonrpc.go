package app

import (
	"context"

	"github.com/tempo-watchtower/watchtower/api/delivery"
	"github.com/tempo-watchtower/watchtower/api/jsonrpc"
	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/api/rpcroute"
	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/commands/delivery/scheduler"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/eventlog"
	"github.com/tempo-watchtower/watchtower/eventlog/follower"
	"github.com/tempo-watchtower/watchtower/infra/chain/ethereum"
	"github.com/tempo-watchtower/watchtower/infra/chain/rpc"
	"github.com/tempo-watchtower/watchtower/infra/chain/tempo"
)

// jsonRPC builds the handler of /rpc; it is empty when JSON-RPC is switched off.
func (a *App) jsonRPC(c config.Config, b Build, pools []*rpc.Pool) rpcroute.Endpoint {
	if !c.API.RPC {
		return rpcroute.Endpoint{}
	}
	return jsonrpc.New(a.configRPC(c, b, pools))
}

// RPC returns the answer of /rpc for the extension's own listener; nil when JSON-RPC is switched off. Calls
// are answered as on delivery's listener, except for what extend changes. Call it after Extend.
func (a *App) RPC(c config.Config, b Build, front rest.Config, extend func(*jsonrpc.Config)) func(rest.Request) error {
	if !c.API.RPC {
		return nil
	}
	all := a.configRPC(c, b, a.Pools)
	extend(&all)
	return delivery.RPC(delivery.Config{Config: front, Submit: a.Submit, RPC: jsonrpc.New(all)})
}

func (a *App) configRPC(c config.Config, b Build, pools []*rpc.Pool) jsonrpc.Config {
	limits := jsonrpc.DefaultLimits()
	limits.TransactionBytes, limits.CallTimeout = c.API.MaxTransactionBytes, c.API.WorkTimeout
	proxies := map[chain.ID]jsonrpc.Proxy{}
	for i, p := range pools {
		proxies[c.Chains[i].ID] = p
	}
	return jsonrpc.Config{
		Submit: a.Submit, Proxies: proxies, Await: a.Tail.Await, NextFree: a.nextFree, Fields: fields,
		Client: "Watchtower/" + b.Version, Limits: limits, Submitted: a.Ports.Metrics.Submission,
	}
}

// fields returns the fields of signed bytes that their decoder does not keep.
func fields(raw []byte) (map[string]any, error) {
	if raw[0] == tempo.Type {
		return tempo.Fields(raw)
	}
	return ethereum.Fields(raw)
}

// nextFree asks the due queue once it has reached the current head of the log. A client whose
// transaction was accepted must find it counted, on any replica. Each query takes a place; none is
// held while it waits for the queue.
func (a *App) nextFree(ctx context.Context, s chain.Sequence, from uint64, clients []string, place rest.Place) (uint64, error) {
	head, err := rest.Placed(ctx, place, a.Store.Head)
	if err != nil {
		return 0, err
	}
	fed := func(ctx context.Context) (eventlog.Position, error) {
		return rest.Placed(ctx, place, func(ctx context.Context) (eventlog.Position, error) {
			return a.Ports.Storage.Checkpoints.Checkpoint(ctx, scheduler.Reader)
		})
	}
	if err := follower.Reached(ctx, head, fed); err != nil {
		return 0, err
	}
	return rest.Placed(ctx, place, func(ctx context.Context) (uint64, error) {
		return a.Ports.Storage.NextFree(ctx, s, from, clients)
	})
}
