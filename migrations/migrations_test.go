package migrations

import (
	"io/fs"
	"path"
	"testing"
)

// A database remembers a migration by its number.
func TestNumbersAreUnique(t *testing.T) {
	for name, files := range map[string]fs.FS{"postgres": Postgres, "embedded": Embedded} {
		seen := map[string]string{}
		err := fs.WalkDir(files, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			dir, file := path.Split(p)
			if len(file) < 5 || file[4] != '_' {
				t.Errorf("%s: %s does not begin with a number of four digits", name, p)
				return nil
			}
			number := dir + file[:4]
			if other := seen[number]; other != "" {
				t.Errorf("%s: %s and %s have the same number", name, other, p)
			}
			seen[number] = p
			return nil
		})
		if err != nil || len(seen) == 0 {
			t.Errorf("%s: %d migrations, %v", name, len(seen), err)
		}
	}
}
