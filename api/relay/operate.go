package relay

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/gorilla/mux"

	"github.com/tempo-watchtower/watchtower/api/rest"
	"github.com/tempo-watchtower/watchtower/commands"
	"github.com/tempo-watchtower/watchtower/commands/relay/guard"
	"github.com/tempo-watchtower/watchtower/commands/relay/worker"
	"github.com/tempo-watchtower/watchtower/domain/access"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/budget"
	"github.com/tempo-watchtower/watchtower/domain/relay/intent"
	"github.com/tempo-watchtower/watchtower/domain/relay/lane"
	"github.com/tempo-watchtower/watchtower/domain/relay/safeguard"
	"github.com/tempo-watchtower/watchtower/domain/relay/signer"
)

// Operators has the routes for operators to halt, limit and pause. They are served by the
// internal listener, see [rest.Admin]. Each change is an event with a reason and an actor, which
// is the holder of the API key. docs/reference/relayer.md lists the routes.
type Operators struct {
	Guard *guard.Guard
	// Mender records commands for lanes.
	Mender worker.Mender
	// Chains are the chains that are served. Signers are the accounts that may sign on them.
	Chains  []chain.ID
	Signers []chain.Address
	Now     func() time.Time
}

// Routes returns all routes for operators.
func (o Operators) Routes() []rest.Route {
	route := func(method, path string, answer func(rest.Request) error) rest.Route {
		scope := access.Admin
		if method == http.MethodGet {
			scope = access.Audit
		}
		return rest.Route{Method: method, Path: path, Scope: scope, Answer: answer}
	}
	return []rest.Route{
		route(http.MethodGet, "/admin/safeguards", o.showSafeguards),
		route(http.MethodPost, "/admin/safeguards/halt", o.halt),
		route(http.MethodPost, "/admin/safeguards/resume", o.resume),
		route(http.MethodPut, "/admin/safeguards/targets", o.setTargets),
		route(http.MethodPut, "/admin/safeguards/rate", o.setRate),
		route(http.MethodGet, "/admin/budgets/{chain}", o.showBudget),
		route(http.MethodPut, "/admin/budgets/{chain}", o.setLimit),
		route(http.MethodGet, "/admin/signers", o.listSigners),
		route(http.MethodGet, "/admin/signers/{chain}/{address}", o.showSigner),
		route(http.MethodPost, "/admin/signers/{chain}/{address}/pause", o.order(func(w word) signer.Command {
			return signer.Pause{Actor: w.actor, Reason: w.reason, At: o.Now()}
		})),
		route(http.MethodPost, "/admin/signers/{chain}/{address}/drain", o.order(func(w word) signer.Command {
			return signer.Drain{Actor: w.actor, Reason: w.reason, At: o.Now()}
		})),
		route(http.MethodPost, "/admin/signers/{chain}/{address}/resume", o.order(func(w word) signer.Command {
			return signer.Resume{Actor: w.actor, Reason: w.reason, At: o.Now()}
		})),
		route(http.MethodPut, "/admin/signers/{chain}/{address}/threshold", o.setThreshold),
		route(http.MethodPut, "/admin/signers/{chain}/{address}/targets", o.setServed),
		route(http.MethodPost, "/admin/lanes/{chain}/{address}/{nonceKey}/fill", o.fill),
	}
}

// Kinds returns the problems that these routes can answer with.
func (Operators) Kinds() []rest.Kind {
	return append(kinds(),
		rest.Kind{Code: safeguard.ErrInvalid, Status: http.StatusUnprocessableEntity, Title: "The safeguard cannot have these properties",
			Meaning: "Such a halt, list or rate is invalid, or the reason is missing."},
		rest.Kind{Code: safeguard.ErrTooMany, Status: http.StatusConflict, Title: "There are too many safeguards",
			Meaning: "The number of halts, lists or rates is at its limit."},
		rest.Kind{Code: budget.ErrInvalid, Status: http.StatusUnprocessableEntity, Title: "The budget cannot have these properties",
			Meaning: "Such an account is invalid, or the reason is missing."},
		rest.Kind{Code: budget.ErrTooMany, Status: http.StatusConflict, Title: "There are too many budgets",
			Meaning: "1000 accounts have limits already."},
		rest.Kind{Code: lane.ErrNoHole, Status: http.StatusConflict, Title: "This nonce does not need to be filled",
			Meaning: "A transaction is signed for this nonce, or no transaction is signed above it."},
		rest.Kind{Code: intent.ErrNotAssigned, Status: http.StatusConflict, Title: "The intent does not have this nonce",
			Meaning: "The intent does not have this nonce."},
		rest.Kind{Code: intent.ErrLive, Status: http.StatusConflict, Title: "Something was signed for the intent",
			Meaning: "A transaction is signed for the intent, or for later intents of its ordering group."},
		rest.Kind{Code: signer.ErrUnknown, Status: http.StatusUnprocessableEntity, Title: "The signer is not known",
			Meaning: "The relay has never had the key of this signer on this chain."},
		rest.Kind{Code: signer.ErrInvalid, Status: http.StatusUnprocessableEntity, Title: "The signer cannot carry out this command",
			Meaning: "The command is invalid for a signer, or the reason is missing."},
	)
}

// word is the actor and the reason of a change.
type word struct{ actor, reason string }

// wished reads the body of a change, with the given members and a reason, and executes the
// change.
func (o Operators) wished(r rest.Request, members func(in reading) []rest.Member, do func(ctx context.Context, w word) (any, error)) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	body, err := r.ReadBody()
	if err != nil {
		return err
	}
	in := reading{rest.NewDocument(body)}
	w := word{actor: actorOf(r)}
	all := append(members(in), rest.Member{Name: "reason", Read: func() error { return in.text(&w.reason) }})
	if err := in.Whole(func() error { return in.Object(all...) }); err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	shown, err := do(ctx, w)
	if err != nil {
		return err
	}
	return r.Reply(http.StatusOK, shown)
}

// actorOf returns the actor for the log: the holder of the key, or "operator" without a key.
func actorOf(r rest.Request) string {
	if _, known := r.Key(); !known {
		return "operator"
	}
	return r.Meta().Actor
}

// scoped is the member that names the scope of a safeguard.
func scoped(in reading, s *safeguard.Scope) rest.Member {
	return rest.Member{Name: "scope", Read: func() error {
		return in.Object(
			rest.Member{Name: "kind", Read: func() error { return in.text((*string)(&s.Kind)) }},
			rest.Member{Name: "chain", Optional: true, Read: func() (err error) {
				if s.Chain, err = in.Chain(); err == nil && s.Chain == 0 {
					err = in.Wrong("must be a chain's number, from 1")
				}
				return err
			}},
			rest.Member{Name: "client", Optional: true, Read: func() error { return in.text(&s.Client) }},
		)
	}}
}

// listed is the member with a list of targets.
func listed(in reading, all *chain.Targets) rest.Member {
	return rest.Member{Name: "targets", Read: func() error {
		return in.List(func(int) error {
			var t chain.Target
			err := in.Object(
				rest.Member{Name: "to", Optional: true, Read: func() (err error) { t.To, err = in.address(); return err }},
				rest.Member{Name: "selectors", Optional: true, Read: func() error {
					return in.List(func(int) error {
						var s chain.Selector
						text, err := in.Text()
						if err == nil && s.UnmarshalText([]byte(text)) != nil {
							err = in.Wrong("is not a selector: 0x and 8 hex digits")
						}
						t.Selectors = append(t.Selectors, s)
						return err
					})
				}},
			)
			*all = append(*all, t)
			return err
		})
	}}
}

func (o Operators) showSafeguards(r rest.Request) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	s, err := o.Guard.Switches(ctx)
	if err != nil {
		return err
	}
	return r.Reply(http.StatusOK, safeguardsOf(s))
}

// flip executes a change of the safeguards.
func (o Operators) flip(ctx context.Context, r rest.Request, c safeguard.Command) (any, error) {
	s, err := o.Guard.Switch(ctx, c, r.Meta())
	return safeguardsOf(s), err
}

func (o Operators) halt(r rest.Request) error {
	c := safeguard.Throw{At: o.Now()}
	return o.wished(r, func(in reading) []rest.Member { return []rest.Member{scoped(in, &c.Scope)} },
		func(ctx context.Context, w word) (any, error) {
			c.Actor, c.Reason = w.actor, w.reason
			return o.flip(ctx, r, c)
		})
}

func (o Operators) resume(r rest.Request) error {
	c := safeguard.Resume{At: o.Now()}
	return o.wished(r, func(in reading) []rest.Member { return []rest.Member{scoped(in, &c.Scope)} },
		func(ctx context.Context, w word) (any, error) {
			c.Actor, c.Reason = w.actor, w.reason
			return o.flip(ctx, r, c)
		})
}

func (o Operators) setTargets(r rest.Request) error {
	c := safeguard.SetTargets{At: o.Now()}
	return o.wished(r, func(in reading) []rest.Member { return []rest.Member{scoped(in, &c.Scope), listed(in, &c.Targets)} },
		func(ctx context.Context, w word) (any, error) {
			c.Actor, c.Reason = w.actor, w.reason
			return o.flip(ctx, r, c)
		})
}

// setRate sets a rate, or removes it if the body has none.
func (o Operators) setRate(r rest.Request) error {
	c := safeguard.SetRate{At: o.Now()}
	return o.wished(r, func(in reading) []rest.Member {
		return []rest.Member{scoped(in, &c.Scope), {Name: "rate", Optional: true, Read: func() error {
			c.Rate = new(safeguard.Rate)
			count := func(into *int) func() error {
				return func() error {
					n, err := in.Number()
					*into = int(min(n, safeguard.BurstMax+1)) //nolint:gosec // small
					return err
				}
			}
			return in.Object(rest.Member{Name: "perSecond", Read: count(&c.Rate.PerSecond)}, rest.Member{Name: "burst", Read: count(&c.Rate.Burst)})
		}}}
	}, func(ctx context.Context, w word) (any, error) {
		c.Actor, c.Reason = w.actor, w.reason
		return o.flip(ctx, r, c)
	})
}

// on returns the chain in the path.
func (o Operators) on(r rest.Request) (chain.ID, error) {
	text, err := url.PathUnescape(mux.Vars(r.Request)["chain"])
	if err != nil {
		return 0, rest.ErrInvalidRequest.Because("the path is not well escaped")
	}
	id, err := chain.ParseNamed(text)
	if err != nil || !slices.Contains(o.Chains, id) {
		return 0, commands.ErrUnsupportedChain.Because("chain %.80q is not served here; served: %s", text, commands.Listed(slices.Values(o.Chains)))
	}
	return id, nil
}

// of returns the chain and signer in the path.
func (o Operators) of(r rest.Request) (on chain.ID, address chain.Address, err error) {
	if on, err = o.on(r); err != nil {
		return 0, address, err
	}
	text, err := url.PathUnescape(mux.Vars(r.Request)["address"])
	if err == nil {
		address, err = chain.ParseAddress(text)
	}
	if err != nil {
		return 0, address, rest.ErrInvalidAddress.Because("%v", err)
	}
	return on, address, nil
}

func (o Operators) showBudget(r rest.Request) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	on, err := o.on(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	s, err := o.Guard.Budget(ctx, on)
	if err != nil {
		return err
	}
	return r.Reply(http.StatusOK, budgetOf(on, s, budget.DayOf(o.Now())))
}

// setLimit sets an account's limits. A limit that the body omits is removed.
func (o Operators) setLimit(r rest.Request) error {
	on, err := o.on(r)
	if err != nil {
		return err
	}
	c := budget.SetLimit{At: o.Now()}
	return o.wished(r, func(in reading) []rest.Member {
		amount := func(name string, into **chain.Amount) rest.Member {
			return rest.Member{Name: name, Optional: true, Read: func() error {
				*into = new(chain.Amount)
				return in.amount(*into)
			}}
		}
		return []rest.Member{amount("fee", &c.Limit.Fee), amount("value", &c.Limit.Value), {Name: "account", Read: func() error {
			return in.Object(
				rest.Member{Name: "kind", Read: func() error { return in.text((*string)(&c.Account.Kind)) }},
				rest.Member{Name: "client", Optional: true, Read: func() error { return in.text(&c.Account.Client) }},
				rest.Member{Name: "subject", Optional: true, Read: func() error { return in.text(&c.Account.Subject) }},
				rest.Member{Name: "signer", Optional: true, Read: func() error {
					a, err := in.address()
					if err == nil {
						c.Account.Signer = *a
					}
					return err
				}},
			)
		}}}
	}, func(ctx context.Context, w word) (any, error) {
		c.Actor, c.Reason = w.actor, w.reason
		s, err := o.Guard.Limit(ctx, on, c, r.Meta())
		return budgetOf(on, s, budget.DayOf(o.Now())), err
	})
}

func (o Operators) listSigners(r rest.Request) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	all := []signerShown{}
	for _, on := range o.Chains {
		for _, a := range o.Signers {
			s, err := o.Guard.Signer(ctx, on, a)
			if err != nil {
				return err
			}
			if s.Known {
				all = append(all, o.signerOf(on, a, s))
			}
		}
	}
	return r.Reply(http.StatusOK, map[string]any{"signers": all})
}

func (o Operators) showSigner(r rest.Request) error {
	if _, err := r.Query(); err != nil {
		return err
	}
	on, address, err := o.of(r)
	if err != nil {
		return err
	}
	ctx, cancel := r.Work()
	defer cancel()
	s, err := o.Guard.Signer(ctx, on, address)
	if err != nil {
		return err
	}
	if !s.Known {
		return signer.ErrUnknown
	}
	return r.Reply(http.StatusOK, o.signerOf(on, address, s))
}

// told executes a command for the signer in the path.
func (o Operators) told(r rest.Request, members func(in reading) []rest.Member, do func(ctx context.Context, on chain.ID, a chain.Address, w word) (signer.State, error)) error {
	on, address, err := o.of(r)
	if err != nil {
		return err
	}
	return o.wished(r, members, func(ctx context.Context, w word) (any, error) {
		s, err := do(ctx, on, address, w)
		return o.signerOf(on, address, s), err
	})
}

func (o Operators) order(c func(word) signer.Command) func(rest.Request) error {
	return func(r rest.Request) error {
		return o.told(r, func(reading) []rest.Member { return nil },
			func(ctx context.Context, on chain.ID, a chain.Address, w word) (signer.State, error) {
				return o.Guard.Order(ctx, on, a, c(w), r.Meta())
			})
	}
}

func (o Operators) setThreshold(r rest.Request) error {
	var threshold chain.Amount
	return o.told(r, func(in reading) []rest.Member {
		return []rest.Member{{Name: "threshold", Read: func() error { return in.amount(&threshold) }}}
	}, func(ctx context.Context, on chain.ID, a chain.Address, w word) (signer.State, error) {
		return o.Guard.Order(ctx, on, a, signer.SetThreshold{Threshold: threshold, Actor: w.actor, Reason: w.reason, At: o.Now()}, r.Meta())
	})
}

// setServed sets the targets that a signer may call.
func (o Operators) setServed(r rest.Request) error {
	var targets chain.Targets
	return o.told(r, func(in reading) []rest.Member { return []rest.Member{listed(in, &targets)} },
		func(ctx context.Context, on chain.ID, a chain.Address, w word) (signer.State, error) {
			return o.Guard.Serve(ctx, on, a, targets, w.actor, w.reason, r.Meta())
		})
}
