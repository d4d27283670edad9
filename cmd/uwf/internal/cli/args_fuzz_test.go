package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/fuzztest"
)

// FuzzArgv runs arbitrary command lines: they are parsed or rejected as usage errors, and no word is added
// except the one that ends the flags, and the long name of -h.
func FuzzArgv(f *testing.F) {
	for _, line := range []string{
		"thread\nstart\nwf\n-p\nhi", "thread\nlist\n--format\njson\n--all", "--format=json\n-q\nthread\nshow\n@-1", "thread\nstep\n--\n--x",
		"-p\n\n\n--", "run\n-p=\n-", "cas\nget\n0000000000000\n--", "help\nthread\nstep", "thread\nstart\n--promt\nx", "\x00\n\xff\n=\n--=\n-", "-V", "-h", "thread\n-h",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		defer fuzztest.Bounded(t)()
		words := strings.Split(line, "\n")
		a := commands{&app.App{}}
		got, err := cmdline.Reorder(a.root(), words)
		if err != nil {
			require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUsage})
			return
		}
		require.LessOrEqual(t, len(got), len(words)+1)
		for _, word := range got {
			require.Contains(t, append(words, "--", "--help"), word)
		}
	})
}
