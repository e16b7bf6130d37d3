package config

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
)

// check refuses values that are valid alone but not together.
func (r *resolver) check() {
	d := &r.draft
	plan := d.Scheduler.Schedule
	r.atMost("scheduler.retry-min", "scheduler.retry-max", plan.RetryMin <= plan.RetryMax, "at most")
	r.atMost("scheduler.rebroadcast-min", "scheduler.rebroadcast-max", plan.RebroadcastMin <= plan.RebroadcastMax, "at most")
	// A lease must outlast two failed renewals.
	r.atMost("owner.lease-renew", "owner.lease-ttl", 3*d.Owner.LeaseRenew <= d.Owner.LeaseTTL, "at most a third of")
	// An attempt may take nine tenths of its lease (scheduler.Worker), which must leave time for
	// one endpoint that does not respond.
	r.atMost("broadcaster.timeout", "scheduler.lease-ttl", d.Broadcaster.Timeout < d.Scheduler.LeaseTTL*9/10, "less than nine tenths of")
	// An attempt under way at a stop ends within its lease.
	r.atMost("scheduler.lease-ttl", "shutdown-grace", d.Scheduler.LeaseTTL <= d.ShutdownGrace, "at most")
	// The write deadline starts at the headers: a body that arrives after it could never be
	// answered.
	r.atMost("api.read-timeout", "api.write-timeout", d.API.ReadTimeout <= d.API.WriteTimeout, "at most")
	if d.Rates.Key.PerSecond > 0 {
		r.atMost("api.max-batch", "rate.key-burst", d.API.MaxBatch <= d.Rates.Key.Burst, "at most")
	}
	if d.Rates.Address.PerSecond > 0 {
		r.atMost("api.max-batch", "rate.address-burst", d.API.MaxBatch <= d.Rates.Address.Burst, "at most")
	}

	if r.sound("listen", "metrics-listen") && Overlap(d.Listen, d.MetricsListen) {
		s := r.setting("metrics-listen")
		r.refuse(s, s.origin, fmt.Sprintf("%s is taken by listen, %s (%s)", d.MetricsListen, d.Listen, r.setting("listen").origin))
	}
	// Checkpoints that outlive the log would skip the events of the next log.
	if r.sound("store", "database") && d.Store.Engine == Memory && d.Database.Engine != Memory {
		s := r.setting("database")
		r.refuse(s, s.origin, "must not outlive the store, which is in memory")
	}
	if r.sound("store", "archive") && d.Store.Engine == Memory && d.Archive.Dir != "" {
		s := r.setting("archive")
		r.refuse(s, s.origin, "must not outlive the store, which is in memory")
	}
	if r.sound("store", "archive") && d.Store.Engine == EventStoreDB && d.Archive.Dir != "" {
		s := r.setting("archive")
		r.refuse(s, s.origin, "cannot be beside an EventStoreDB, whose log stays whole")
	}
	if r.sound("store", "database") && d.Store.Engine == EventStoreDB && d.Database.Engine != Postgres {
		s := r.setting("database")
		r.refuse(s, s.origin, "must be postgres://… beside a store that is an EventStoreDB, which keeps the log alone")
	}
	if r.sound("store", "database") && d.Store.Engine != EventStoreDB && d.Database.Engine == EventStoreDB {
		s := r.setting("database")
		r.refuse(s, s.origin, "cannot be an EventStoreDB, which keeps the log alone")
	}
	if s := r.setting("confirmations"); r.sound("chains", "confirmations") {
		for _, id := range slices.Sorted(maps.Keys(d.confirmations)) {
			if !slices.ContainsFunc(d.Chains, func(c Chain) bool { return c.ID == id }) {
				r.refuse(s, s.origin, fmt.Sprintf("chain %s is not among the chains", id))
			}
		}
	}
}

// atMost refuses the first setting unless ok, and names the second setting as the bound.
func (r *resolver) atMost(path, bound string, ok bool, relation string) {
	if ok || !r.sound(path, bound) {
		return
	}
	s, limit := r.setting(path), r.setting(bound)
	r.refuse(s, s.origin, fmt.Sprintf("%s must be %s %s, which is %s (%s)", s.show(), relation, bound, limit.show(), limit.origin))
}

// sound reports whether no value of these settings was refused.
func (r *resolver) sound(paths ...string) bool {
	for _, path := range paths {
		if r.setting(path).bad {
			return false
		}
	}
	return true
}

// Overlap reports whether two listeners at host:port would conflict on a port.
func Overlap(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	numberA, _ := strconv.Atoi(portA)
	numberB, _ := strconv.Atoi(portB)
	return numberA == numberB && numberA != 0 &&
		(isEvery(hostA) || isEvery(hostB) || loopback(hostA) == loopback(hostB))
}

func isEvery(host string) bool { return host == "" || net.ParseIP(host).IsUnspecified() }

func loopback(host string) string {
	if host == "localhost" {
		return "127.0.0.1"
	}
	return host
}
