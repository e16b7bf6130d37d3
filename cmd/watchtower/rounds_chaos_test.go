//go:build chaos

package main_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/tempo-watchtower/watchtower/infra/testenv"
	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// The variables that scale the tests. The service ignores variables of tests, and refuses other
// unknown variables with its prefix.
const (
	seedVar   = "WATCHTOWER_TEST_SEED"   // of the first campaign; default 100
	seedsVar  = "WATCHTOWER_TEST_SEEDS"  // number of campaigns; default 4
	roundsVar = "WATCHTOWER_TEST_ROUNDS" // per campaign; default 10
)

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Rows 1 to 5, 20, 25 and 30: [TestRounds] for longer, with a Redis that is flushed, filled with
// foreign data, and killed.
func TestManyRounds(t *testing.T) {
	t.Parallel()
	first, seeds, rounds := number(t, seedVar, 100), number(t, seedsVar, 4), number(t, roundsVar, 10)
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			engines(t, func(t *testing.T, store func(t *testing.T, dir string) []string) {
				c := newCampaign(t, newWorld(t, store, "--block-time", "1"), uint64(seed))
				c.withRedis(t)
				c.run(t, rounds, 30)
			})
		})
	}
}

// withRedis gives the replicas unreliable hints.
func (c *campaign) withRedis(t *testing.T) {
	t.Helper()
	redis, err := server.NewRedis(testenv.Need(t, testenv.RedisBinVar))
	check(t, err)
	t.Cleanup(func() { check(t, redis.Remove()) })
	check(t, redis.Start(c.ctx))
	options, err := goredis.ParseURL(redis.URL())
	check(t, err)
	client := goredis.NewClient(options)
	t.Cleanup(func() { check(t, client.Close()) })
	c.flags = []string{"--redis", redis.URL()}
	c.meddle = func() {
		switch what := c.dice.IntN(4); what {
		case 0:
			c.note("Redis emptied")
			client.FlushAll(c.ctx)
		case 1:
			c.note("Redis poisoned")
			client.Set(c.ctx, "watchtower:ready:42431", "no set", 0)
			client.ZAdd(c.ctx, "watchtower:retry:42431", goredis.Z{Score: -1, Member: "\x00"}, goredis.Z{Score: 1, Member: "garbage"})
		case 2:
			c.note("Redis killed")
			check(t, redis.Kill())
			c.wait(time.Second)
			if err := redis.Start(c.ctx); err != nil {
				t.Log(err) // its port may be taken meanwhile: it stays away
			}
		}
	}
}
