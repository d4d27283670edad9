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

func manyThreads(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "01ARZ3NDEKTSV4RRFF%08d: FWXYZ0AMEHPX7\n", 2*i)
	}
	return text.String()
}

// TestInPlace applies the same operations to a text in place and to its parsed table.
func TestInPlace(t *testing.T) {
	t.Parallel()
	parse := func(text string) *table { return parseTable("f", []byte(text), true) }
	text := string(parse(manyThreads(100)).render())
	for i := range 202 {
		key := fmt.Sprintf("01ARZ3NDEKTSV4RRFF%08d", i)
		place, parsed := parse(text), parse(text)
		require.True(t, place.inPlace)
		parsed.ensureParsed()
		same := func() {
			t.Helper()
			want, err := parsed.get(key)
			require.NoError(t, err)
			got, err := place.get(key)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, string(parsed.render()), string(place.render()))
			require.True(t, place.inPlace)
		}
		same()
		for _, x := range []*table{place, parsed} {
			x.set(key, "44P8EP6N3NXZ5")
		}
		same()
		for _, x := range []*table{place, parsed} {
			x.remove(key)
		}
		same()
	}
	require.True(t, parse(string(parse("").render())).inPlace)
}

// A matching checksum of invalid text, in an untrusted home.
func TestASumOfNonsense(t *testing.T) {
	t.Parallel()
	line := manyThreads(1)
	for _, second := range []string{"../../../../../../../../evi: FWXYZ0AMEHPX7\n", strings.Repeat("x", headLine), "# " + line[2:]} {
		covered := "\n" + line + second[:headLine]
		f := parseTable("f", []byte(sumPrefix+sumText([]byte(covered))+covered), true)
		require.True(t, f.inPlace)
		got := map[string]protocol.Hash{}
		for key, h := range f.all {
			got[key] = h
		}
		require.Equal(t, map[string]protocol.Hash{line[:26]: "FWXYZ0AMEHPX7"}, got)
	}
}

// Changing any byte of a file with a checksum is reported, or loses nothing because the checksum line has
// become a comment. A change keeps the report.
func TestTheSumFindsDamage(t *testing.T) {
	t.Parallel()
	good := string(parseTable("f", []byte("# facts.jsonl says where these threads come from: old\n"+manyThreads(3)), true).render())
	for at := range good {
		for bit := range 8 {
			bad := []byte(good)
			bad[at] ^= 1 << bit
			f := parseTable("f", bad, true)
			if len(f.problems()) > 0 {
				f.set("01ARZ3NDEKTSV4RRFF00000001", "44P8EP6N3NXZ5")
				require.NotEmpty(t, parseTable("f", f.render(), true).problems(), "%q", bad)
				continue
			}
			require.Len(t, f.entries, 3, "%q", bad)
		}
	}
	require.Empty(t, parseTable("f", []byte(good[strings.Index(good, "\n")+1:]), true).problems(), "a person has deleted it")
}

// Listing 100,000 threads needs no memory per thread.
func TestHeadsAreNotHeld(t *testing.T) {
	home := t.TempDir()
	text := parseTable("f", []byte(manyThreads(10_000)), true).render()
	require.NoError(t, os.WriteFile(filepath.Join(home, threadsFile), text, 0o600))
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
	require.Equal(t, "01ARZ3NDEKTSV4RRFF00019998", last.Thread)
}
