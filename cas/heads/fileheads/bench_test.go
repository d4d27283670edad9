package fileheads_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// threadID returns an id of realistic length.
func threadID(i int) string { return fmt.Sprintf("01K8ZQ4V9X6D3M2N%010d", i) }

// filled returns an index with n active and n ended threads.
func filled(t testing.TB, n int) *fileheads.Heads {
	t.Helper()
	dir := t.TempDir()
	var threads, history strings.Builder
	for i := range n {
		fmt.Fprintf(&threads, "%s: 4EAEYQKFHTJ23\n", threadID(2*i))
		fmt.Fprintf(&history, `{"thread":%q,"workflow":"44P8EP6N3NXZ5","head":"4EAEYQKFHTJ23","status":"completed","completedAt":%d}`+"\n", "5"+threadID(i)[1:], i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "threads.yaml"), fileheads.WithSum(threads.String()), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "history.jsonl"), []byte(history.String()), 0o644))
	return fileheads.Open(dir, durable.OS())
}

var sizes = []int{10, 1_000, 100_000}

func BenchmarkHead(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := filled(b, n)
			for b.Loop() {
				_, err := x.Head(b.Context(), threadID(n))
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkMove(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := filled(b, n)
			old, next := protocol.Hash("4EAEYQKFHTJ23"), protocol.Hash("108DB063KRQWW")
			for b.Loop() {
				require.NoError(b, x.Move(b.Context(), threadID(n), old, next))
				old, next = next, old
			}
		})
	}
}

// BenchmarkAdd measures starting a thread, including the search of the history for a missing id.
func BenchmarkAdd(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := filled(b, n)
			for i := 0; b.Loop(); i++ {
				require.NoError(b, x.Add(b.Context(), threadID(2*i+1), "4EAEYQKFHTJ23", heads.Facts{}))
			}
		})
	}
}

func BenchmarkHeads(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := filled(b, n)
			for b.Loop() {
				for _, err := range x.Heads(b.Context()) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkEnded(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x := filled(b, n)
			for b.Loop() {
				_, err := x.Ended(b.Context(), "5"+threadID(n - 1)[1:])
				require.NoError(b, err)
			}
		})
	}
}
