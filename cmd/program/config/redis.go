package config

import "github.com/tempo-watchtower/watchtower/infra/redis"

// redis is the setting for the URL of Redis.
func (d *draft) redis() *setting {
	return &setting{
		path: "redis", kind: text, absent: "none", allowed: "`redis://…` or `rediss://…`",
		doc: "A Redis through which replicas notify each other of due work, so that they learn of it sooner than by polling. " +
			"It holds hashes and times, never bytes, and losing it changes no outcome. " +
			"`rediss` is with TLS; the path is the number of the database, and each deployment needs its own database.",
		show: func() string { return d.Redis.String() },
		read: func(text string) error {
			if err := redis.Check(text); err != nil {
				return err
			}
			d.Redis = NewSecret(text)
			return nil
		},
	}
}
