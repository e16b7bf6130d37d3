package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tempo-watchtower/watchtower/infra/eventstoredb/esdbtest/esdbcluster"
)

// addSettings adds a flag for each behaviour of a real server that the double can have.
// The returned function gives the settings once the flags are parsed.
func addSettings(flags *pflag.FlagSet, s esdbcluster.Settings) func() esdbcluster.Settings {
	flags.Var(&interval{&s.CommitDelay}, "commit-delay", "time in which a node gets a write onto its disk")
	flags.Var(&interval{&s.FollowerLag}, "follower-lag", "time from a commit until a follower shows it")
	flags.Var(&interval{&s.Election}, "election", "time without a leader after one was lost")
	flags.DurationVar(&s.CommitTimeout, "commit-timeout", s.CommitTimeout, "time after which an append without an answer is aborted; 0 means 2s")
	flags.DurationVar(&s.StepDown, "step-down", s.StepDown, "time for which a leader without a quorum goes on writing")
	flags.DurationVar(&s.GossipLag, "gossip-lag", s.GossipLag, "age of a node's knowledge about the others")
	flags.BoolVar(&s.DropRepeats, "drop-repeats", s.DropRepeats, "do not answer a repeat of an uncommitted append")
	flags.BoolVar(&s.ConflictsAhead, "conflicts-ahead", s.ConflictsAhead, "count uncommitted writes in the version of a conflict")
	flags.BoolVar(&s.Forward, "forward", s.Forward, "followers forward appends without requires-leader")
	flags.IntVar(&s.SlowLimit, "slow-limit", s.SlowLimit, "events that a live subscription may be behind before it is dropped; 0 means any number")
	flags.BoolVar(&s.ResumeSlow, "resume-slow", s.ResumeSlow, "let a slow subscription catch up again, as 24.6 does, instead of dropping it")
	seed := flags.Uint64("seed", 1, "seed of the times that are drawn")
	return func() esdbcluster.Settings {
		s.Rand = rand.New(rand.NewPCG(*seed, *seed))
		return s
	}
}

// interval is a range of durations as a flag: "5ms", or "0s..20ms".
type interval struct{ *esdbcluster.Range }

func (i *interval) String() string {
	if i.Range == nil || i.Most <= i.Least {
		return fmt.Sprint(i.least())
	}
	return fmt.Sprintf("%s..%s", i.Least, i.Most)
}

func (i *interval) least() time.Duration {
	if i.Range == nil {
		return 0
	}
	return i.Least
}

// Set reads a flag's value.
func (i *interval) Set(text string) error {
	least, most, drawn := strings.Cut(text, "..")
	if !drawn {
		most = least
	}
	var err error
	if i.Least, err = time.ParseDuration(least); err != nil {
		return err
	}
	if i.Most, err = time.ParseDuration(most); err != nil {
		return err
	}
	if i.Least < 0 || i.Most < i.Least {
		return fmt.Errorf("%s is not a range of durations", text)
	}
	return nil
}

// Type names the value in the help.
func (i *interval) Type() string { return "duration or range" }
