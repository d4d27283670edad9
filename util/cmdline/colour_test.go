package cmdline_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/env"
)

func TestColours(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ []string
		want    bool
	}{
		"a pipe":          {nil, false},
		"forced":          {[]string{"CLICOLOR_FORCE=1"}, true},
		"forced not":      {[]string{"CLICOLOR_FORCE=0"}, false},
		"forced, but no":  {[]string{"CLICOLOR_FORCE=1", "NO_COLOR=1"}, false},
		"an empty no":     {[]string{"CLICOLOR_FORCE=1", "NO_COLOR="}, true},
		"forced and dumb": {[]string{"CLICOLOR_FORCE=1", "TERM=dumb"}, true},
	} {
		require.Equal(t, test.want, cmdline.Colours(env.Env{Environ: test.environ}, io.Discard), name)
	}
}
