package postgres_test

import (
	"testing"

	"github.com/tempo-watchtower/watchtower/infra/postgres"
	"github.com/tempo-watchtower/watchtower/infra/storetest"
)

func TestGroups(t *testing.T) {
	storetest.Groups(t, func(t *testing.T) storetest.Opened[storetest.GroupRows] {
		return opened(open(t, postgres.Options{}), func(db *postgres.DB) storetest.GroupRows { return db.Groups })
	})
}
