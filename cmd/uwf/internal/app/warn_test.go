package app

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Each step of an agent repeats its warnings; the user sees them once, each on a separate line.
func TestWarningIsPrintedOnce(t *testing.T) {
	t.Parallel()
	var out, talk bytes.Buffer
	a := &App{Env: env.Env{Stderr: &out}}
	a.shown.Store(&Display{w: &out, live: true})
	a.warnOnce("commands run as root")
	a.warnOnce("commands run as root")
	prosetest.Text(t, out.String())
	a.Env.Stderr = &talk
	a.warnOnce("another one")
	require.Equal(t, "uwf: warning: another one\n", talk.String())

	a.Flags.Quiet = true // suppresses progress and hints only
	a.warnOnce("a third one")
	a.Messagef("step 1")
	require.Equal(t, "uwf: warning: another one\nuwf: warning: a third one\n", talk.String())
}
