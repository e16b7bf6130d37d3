package tx

import "github.com/tempo-watchtower/watchtower/domain/chain"

// ShareRivals shares at most limit rows out among n sequences that have rivals: sequences is
// the number of sequences that get rows, each the number of rows that one of them may get.
func ShareRivals(limit, n int) (sequences, each int) {
	if limit <= 0 || n <= 0 {
		return 0, 0
	}
	sequences = min(limit, n)
	return sequences, limit / sequences
}

// CutRivals keeps the first rows of each sequence, at most each of one. unread are the
// sequences with more rows.
func CutRivals(rows []Work, each int) (kept []Work, unread []chain.Sequence) {
	read := map[chain.Sequence]int{}
	for _, row := range rows {
		s := row.Named()
		read[s]++
		switch {
		case read[s] <= each:
			kept = append(kept, row)
		case read[s] == each+1:
			unread = append(unread, s)
		}
	}
	return kept, unread
}
