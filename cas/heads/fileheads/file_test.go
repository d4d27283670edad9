package fileheads

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

func TestInPlaceOrParsed(t *testing.T) {
	t.Parallel()
	const ours = "a: 4EAEYQKFHTJ23\nb-1: 108DB063KRQWW\nb.2: 44P8EP6N3NXZ5\n"
	require.True(t, isOurs([]byte(ours)))
	require.True(t, isOurs(nil))
	for _, text := range []string{
		"\n", "a", "a: 4EAEYQKFHTJ23", ": 4EAEYQKFHTJ23\n", "a: 4EAEYQKFHTJ2\n", "a: 4EAEYQKFHTJ234\n", "a : 4EAEYQKFHTJ23\n",
		" a: 4EAEYQKFHTJ23\n", "a: 4EAEYQKFHTJ23\r\n", "# a: 4EAEYQKFHTJ23\n", "'a': 4EAEYQKFHTJ23\n", "{a: 4EAEYQKFHTJ23\n", "a:b: 4EAEYQKFHTJ23\n",
		"b: 4EAEYQKFHTJ23\na: 4EAEYQKFHTJ23\n", "a: 4EAEYQKFHTJ23\na: 4EAEYQKFHTJ23\n", ours + "\n", "\n" + ours, "é: 4EAEYQKFHTJ23\n",
		"a: \"EAEYQKFHTJ2\"\n", "a: 4EAE YQKFHTJ2\n",
	} {
		require.False(t, isOurs([]byte(text)), "%q", text)
	}
}

// TestInPlace does the same to a text in place and to its table.
func TestInPlace(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "t%03d: 4EAEYQKFHTJ23\n", 2*i)
	}
	for i := -1; i <= 200; i++ {
		sameInPlace(t, text.String(), fmt.Sprintf("t%03d", i))
	}
	sameInPlace(t, "", "a")
	sameInPlace(t, text.String(), "needs: quotes")
	sameInPlace(t, "a-b: 4EAEYQKFHTJ23\na: 4EAEYQKFHTJ23\n", "a")
	sameInPlace(t, "a: 4EAEYQKFHTJ23\na-b: 4EAEYQKFHTJ23\n", "a-")
}

func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", "a: 4EAEYQKFHTJ23\nb: 108DB063KRQWW\n", "12: 4EAEYQKFHTJ23\n", "a: 1234567890123\n", "true: 4EAEYQKFHTJ23\n", "a: UUUUUUUUUUUUU\n", "-: 4EAEYQKFHTJ23\n", "a: 4EAEYQKFHTJ23\n---: 4EAEYQKFHTJ23\n",
	} {
		f.Add(text, "a")
		f.Add(text, "12")
		f.Add(text, "a b")
	}
	f.Fuzz(func(t *testing.T, text, key string) { sameInPlace(t, text, key) })
}

// sameInPlace looks up, sets and removes a key in both ways. The texts may then
// differ in quotes that a person has left out, not in what they say.
func sameInPlace(t *testing.T, text, key string) {
	t.Helper()
	const h = protocol.Hash("44P8EP6N3NXZ5")
	table := parseTable("f", text, anyKey)
	if checkEntry(key, h) != nil || len(table.bad) > 0 {
		return
	}
	get := func() {
		t.Helper()
		want, err := table.get(key)
		require.NoError(t, err)
		got, err := newFile("f", []byte(text), anyKey, isOurs([]byte(text))).get(key)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	get()
	file := newFile("f", []byte(text), anyKey, isOurs([]byte(text)))
	file.set(key, h)
	table.set(key, h)
	text = string(file.render())
	require.Equal(t, append([]entry{}, table.entries...), append([]entry{}, parseTable("f", text, anyKey).entries...))
	get()
	file = newFile("f", []byte(text), anyKey, isOurs([]byte(text)))
	file.remove(key)
	table.remove(key)
	text = string(file.render())
	require.Equal(t, append([]entry{}, table.entries...), append([]entry{}, parseTable("f", text, anyKey).entries...))
	get()
}

// 100,000 threads that are listed cost no memory each.
func TestHeadsAreNotHeld(t *testing.T) {
	home := t.TempDir()
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "01ARZ3NDEKTSV4RRFF%08d: FWXYZ0AMEHPX7\n", i)
	}
	require.NoError(t, os.WriteFile(filepath.Join(home, threadsFile), []byte(text.String()), 0o600))
	x := Open(home, durable.OS())
	var last heads.Head
	allocations := testing.AllocsPerRun(1, func() {
		last = heads.Head{}
		for h, err := range x.Heads(t.Context()) {
			if err != nil || h.Hash != "FWXYZ0AMEHPX7" || h.Thread <= last.Thread {
				t.Fatal(h, last, err)
			}
			last = h
		}
	})
	require.Less(t, allocations, 100.0)
	require.Equal(t, "01ARZ3NDEKTSV4RRFF00009999", last.Thread)
}
