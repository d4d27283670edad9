package runfiles

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

// flips are a text with one bit flipped, for each of its bits.
func flips(text []byte, each func(damaged []byte)) {
	for i := range len(text) * 8 {
		damaged := append([]byte(nil), text...)
		damaged[i/8] ^= 1 << (i % 8)
		each(damaged)
	}
}

// What a failed try has cost is known, or known to be unknown, whatever happens to its line.
func TestADamagedTryCostsWhatNobodyKnows(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	cost := 0.25
	first := Try{Try: protocol.Try{Agent: "a", Error: "overloaded", Usage: &protocol.Usage{InputTokens: 1000, CostUSD: &cost}, AtMs: 7}, Visit: "V", Alias: "a", Kind: protocol.FailedServer}
	second := first
	second.AtMs = 8
	lines, err := Tries{first, second}.Lines()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.File(TriesFile), lines, 0o600))
	require.Equal(t, Tries{first, second}, d.Tries(nil))
	require.Equal(t, Tries{second}, d.Tries([]protocol.Try{first.Try}), "a step holds it")
	flips(lines, func(damaged []byte) {
		require.NoError(t, os.WriteFile(d.File(TriesFile), damaged, 0o600))
		got := d.Tries(nil)
		require.NotEqual(t, Tries{first, second}, got)
		unknown := 0
		for _, try := range got {
			if try.AtMs == 0 {
				require.Contains(t, try.Error, "damaged")
				require.False(t, try.Usage.IsPriced())
				unknown++
			}
		}
		require.Positive(t, unknown, "%s", damaged)
	})
	require.NoError(t, os.Remove(d.File(TriesFile)))
	require.NoError(t, os.Mkdir(d.File(TriesFile), 0o700))
	require.Len(t, d.Tries(nil), 1, "something else is in its place")
}

// A letter is told as it was written, or with a word about its damage; never not at all.
func TestADamagedLetterIsToldAsSuch(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	name, err := d.Post(durable.OS(), Letter{Text: "not in main.go", AtMs: 7}, "K")
	require.NoError(t, err)
	whole, err := os.ReadFile(d.mail(name))
	require.NoError(t, err)
	var told string
	flips(whole, func(damaged []byte) {
		require.NoError(t, os.WriteFile(d.mail(name), damaged, 0o600))
		got := d.Unread()
		require.Len(t, got, 1)
		if got[0].Text != "not in main.go" {
			warning, _, _ := strings.Cut(got[0].Text, "\n")
			if told == "" {
				told = warning
				prosetest.Text(t, told)
			}
			require.Equal(t, told, warning)
			require.Contains(t, got[0].Text, string(damaged))
		}
	})
	require.NoError(t, d.Told(d.Unread()[0], "0123456789ABC"))
	require.Empty(t, d.Unread())
}

func TestTheLongestLetterIsRead(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	text := strings.Repeat("<", MaxLetter)
	_, err := d.Post(durable.OS(), Letter{Text: text}, "K")
	require.NoError(t, err)
	require.Equal(t, text, d.Unread()[0].Text)
}

// Lines of versions that wrote no sum are read.
func TestALineWithoutASum(t *testing.T) {
	t.Parallel()
	d := Dir(t.TempDir())
	require.NoError(t, os.MkdirAll(d.mail(""), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.mail(""), "1-K.json"), []byte(`{"text":"hello","atMs":7}`+"\n"), 0o600))
	require.Equal(t, "hello", d.Unread()[0].Text)
	require.True(t, errors.Is(d.Told(Letter{name: "gone.json"}, "0123456789ABC"), fs.ErrNotExist))
}
