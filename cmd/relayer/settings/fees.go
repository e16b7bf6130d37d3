package settings

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tempo-watchtower/watchtower/cmd/program/config"
	"github.com/tempo-watchtower/watchtower/domain/chain"
	"github.com/tempo-watchtower/watchtower/domain/relay/fee"
)

const (
	percentMax = 1000
	priceMax   = 1_000_000_000_000_000_000
	// perTransactionMax is the highest limit on the cost of one transaction, in wei.
	perTransactionMax = 9_000_000_000_000_000_000
	feeTokensMax      = 16
)

func (d *draft) fees() []config.Row {
	row := func(path string, value *int64, standard chain.Price, doc string) config.Row {
		return config.NumberRow(path, value, int64(standard.Int().Uint64()), 0, priceMax, doc) //nolint:gosec // below priceMax
	}
	standard, f := fee.Default(), &d.Fee
	return []config.Row{
		row("fee.ceiling", &d.ceiling, standard.Ceiling,
			"The most that one unit of gas may cost, in the chain's smallest unit. Nothing is signed above it. Intents offer at most ten elevenths of it, so that a no-op can still replace a canceled intent. For the same reason it must be at least a tenth above `fee.min-fee`."),
		row("fee.tip-ceiling", &d.tipCeiling, standard.TipCeiling,
			"The most of the fee that may be the tip; 0 is as much as `fee.ceiling`. Intents offer at most ten elevenths of it too."),
		row("fee.min-fee", &d.minFee, standard.MinFee,
			"The least that the chain's pools accept for one unit of gas."),
		row("fee.min-tip", &d.minTip, standard.MinTip,
			"The least tip that the chain's pools accept."),
		config.NumberRow("fee.bump", &d.bump, int64(standard.Bump), fee.BumpMin, percentMax, //nolint:gosec // a percentage
			"By how many percent a replacement's fee is above the fee of the replaced transaction. Pools accept no value below 10."),
		config.NumberRow("fee.gas-margin", &d.gasMargin, int64(standard.GasMargin), 0, percentMax, //nolint:gosec // a percentage
			"By how many percent a gas limit is above the nodes' estimate."),
		config.NumberRow("fee.gas-ceiling", &d.gasCeiling, int64(standard.GasCeiling), fee.GasMin, fee.GasMax, //nolint:gosec // small
			"The highest gas limit."),
		config.NumberRow("fee.max-per-transaction", &d.perTransaction, int64(standard.MaxPerTransaction.Int().Uint64()), 0, perTransactionMax, //nolint:gosec // below priceMax
			"The highest gas limit × fee of one transaction, in the chain's smallest unit; 0 is no limit. Geth and reth refuse more than their own limit, `--rpc.txfeecap`, which is 1 ether unless set. If an intent's gas limit is so high that this setting keeps its fee below `fee.ceiling`, the intent waits while gas costs more, as with its own `maxFeePerGas`."),
		config.NumberRow("fee.history", &f.History, standard.History, 1, fee.HistoryMax,
			"For how many of the newest blocks nodes are queried for the tips that the blocks accepted."),
		levels("fee.percentiles", "10,50,90", "each from 0 to 100, rising",
			"For the urgencies `slow`, `normal` and `fast`: the position of the offered tip among the tips of a block, in percent from the lowest.",
			percentile, &f.Slow.Percentile, &f.Normal.Percentile, &f.Fast.Percentile),
		levels("fee.headrooms", "25,50,100", "each from 0 to 1000, not falling",
			"For the urgencies `slow`, `normal` and `fast`: the percentage that is added to the next base fee. A full block raises the base fee by an eighth.",
			percent, &f.Slow.Headroom, &f.Normal.Headroom, &f.Fast.Headroom),
		levels("fee.premiums", "0,10,25", "each from 0 to 1000, not falling",
			"For the urgencies `slow`, `normal` and `fast`, on a chain without base fees: the percentage that is added to the nodes' suggested gas price.",
			percent, &f.Slow.Premium, &f.Normal.Premium, &f.Fast.Premium),
		addresses("fee.tokens", &f.Tokens,
			"The tokens that may pay fees, on Tempo; the first is used unless an intent names another. Without tokens an intent cannot name one, and the signer's account or the chain decides."),
	}
}

// levels is a setting of three numbers, one per urgency.
func levels[N float64 | uint64](path, standard, allowed, doc string, parse func(string) (N, error), into ...*N) config.Row {
	w := config.Words{Path: path, Standard: standard, Allowed: "three numbers, " + allowed, Doc: doc}
	shown := standard
	return config.TextRow(w, func(text string) error {
		parts := strings.Split(text, ",")
		if len(parts) != len(into) {
			return fmt.Errorf("must be %d numbers with commas between, for slow, normal and fast", len(into))
		}
		values := make([]N, len(into))
		for i, part := range parts {
			n, err := parse(strings.TrimSpace(part))
			if err != nil {
				return fmt.Errorf("entry %d %w", i+1, err)
			}
			if i > 0 && n < values[i-1] {
				return fmt.Errorf("entry %d is less than the one before", i+1)
			}
			values[i] = n
		}
		for i, n := range values {
			*into[i] = n
		}
		shown = text
		return nil
	}, func() string { return shown })
}

func percentile(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return 0, errors.New("is not a number from 0 to 100")
	}
	return n, nil
}

func percent(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n > percentMax {
		return 0, fmt.Errorf("is not a whole number from 0 to %d", percentMax)
	}
	return n, nil
}
