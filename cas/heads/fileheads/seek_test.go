package fileheads

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// seek finds what a reading of the whole file finds, or leaves the decision to it.
func TestSeek(t *testing.T) {
	t.Parallel()
	id := func(i int) string { return fmt.Sprintf("01K8ZQ4V9X6D3M2N%010d", i) }
	for _, n := range []int{1, seekLines, seekLines + 1, 2 * seekLines} {
		x := Open(t.TempDir(), durable.OS())
		text := &table{threads: true, minFacts: 12}
		for i := range n {
			text.entries = append(text.entries, entry{key: id(2 * i), hash: protocol.Hash(fmt.Sprintf("4EAEYQKF%05d", i))})
		}
		sound := text.render()
		write := func(data []byte) {
			require.NoError(t, os.WriteFile(filepath.Join(x.dir, threadsFile), data, 0o644))
		}
		write(sound)
		for _, i := range []int{0, 1, n / 2, n - 1, n} {
			h, ok := x.seek(id(2 * i))
			require.True(t, ok)
			want, err := parseTable("", sound, true).get(id(2 * i))
			require.NoError(t, err)
			require.Equal(t, want, h, "thread %d of %d", i, n)
			h, ok = x.seek(id(2*i + 1))
			require.True(t, ok)
			require.Empty(t, h)
		}
		for at := range sumLineMax + headLine {
			damaged := bytes.Clone(sound)
			damaged[at] ^= 1
			write(damaged)
			_, ok := x.seek(id(0))
			require.False(t, ok, "byte %d", at)
		}
		for _, cut := range []int{1, headLine, len(sound) - sumLineMax, len(sound)} {
			write(sound[:len(sound)-cut])
			_, ok := x.seek(id(0))
			require.False(t, ok, "without the last %d bytes", cut)
		}
	}
}
