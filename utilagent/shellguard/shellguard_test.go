package shellguard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/shellguard"
)

func TestRefuseEngine(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"uwf run solve-issue -p x", "uwf thread step 01J", "uwf thread exec 01J", "uwf --home /h thread step 01J",
		"uwf --format=json thread resume @", "cd /x && uwf thread step @", "echo a; /usr/bin/uwf run w",
		"FOO=1 env -i BAR=2 uwf run w", "timeout 5 uwf thread step @", "$(uwf run w)", "echo `uwf run w`", "(uwf run w)",
		"if true; then uwf run w; fi", "echo @ | xargs uwf thread step", "uwf.exe run w",
	} {
		require.ErrorIs(t, shellguard.RefuseEngine(line), shellguard.ErrEngine, line)
	}
	for _, line := range []string{
		"", "ls", "uwf thread read @", "uwf thread show step", "uwf step read ABC", "uwf thread steps @", "uwf workflow show run",
		`grep -rn "uwf run" .`, `git commit -m "fix uwf thread step"`, "uwf-mock T r", "go run ./cmd/uwf-mock", "'",
	} {
		require.NoError(t, shellguard.RefuseEngine(line), line)
	}
}
