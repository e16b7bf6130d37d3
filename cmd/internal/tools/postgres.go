package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/tempo-watchtower/watchtower/infra/testenv/server"
)

// postgresMajorMin is the oldest Postgres version that is still maintained.
const postgresMajorMin = 14

// Postgres is a folder with initdb and postgres.
func (b Box) Postgres(ctx context.Context) (Tool, error) {
	return b.first(ctx, postgresAnswers,
		source{"system", postgresOfSystem},
		source{"debian", b.postgresFromDebian},
		source{"npm", b.postgresFromNPM},
	)
}

func postgresAnswers(ctx context.Context, bin string) (string, error) {
	program := filepath.Join(bin, "postgres")
	line, err := answer(ctx, server.Libraries(program), program, "--version")
	if err != nil {
		return "", err
	}
	v := versionIn(line)
	if major(v) < postgresMajorMin {
		return "", fmt.Errorf("%s is %s and must be %d or newer", bin, v, postgresMajorMin)
	}
	return v, nil
}

// postgresOfSystem searches Debian's folders, then pg_config's, then PATH. pg_config also comes
// with the client's headers, and then names a folder without a server.
func postgresOfSystem(ctx context.Context) (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	newestFirst(folders)
	if dir, err := answer(ctx, nil, "pg_config", "--bindir"); err == nil {
		folders = append(folders, dir)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	return withServer(folders)
}

func withServer(folders []string) (string, error) {
	for _, dir := range folders {
		if isProgram(filepath.Join(dir, "initdb")) && isProgram(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", errors.New("no folder with initdb and postgres")
}

// newestFirst sorts …/15/bin before …/9.6/bin.
func newestFirst(folders []string) {
	slices.SortFunc(folders, func(a, b string) int {
		return cmp.Compare(major(filepath.Base(filepath.Dir(b))), major(filepath.Base(filepath.Dir(a))))
	})
}

func (b Box) postgresFromDebian(ctx context.Context) (string, error) {
	bin := func(tree string) (string, error) {
		folders, err := filepath.Glob(filepath.Join(tree, "usr/lib/postgresql/*/bin"))
		if err != nil {
			return "", err
		}
		return withServer(folders)
	}
	tree, err := b.debian(ctx, "postgresql", func(dir string) bool {
		_, err := bin(dir)
		return err == nil
	})
	if err != nil {
		return "", err
	}
	return bin(tree)
}
