package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestWorkflowNameProblem(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "solve-issue", "7.b_c", "löse", strings.Repeat("x", 100)} {
		require.Empty(t, protocol.WorkflowNameProblem(good), good)
	}
	for _, bad := range []string{
		"", "a$(touch PWNED)b", "--agent=x", "-rf", ".x", "a b", "a/b", "a;b", "a`b`", "a\nb", "a\x1b[2Jb", "a\u202eb", "a\xffb", "a'b", "x.yaml", "x.yml", "44P8EP6N3NXZ5",
		strings.Repeat("x", 101),
	} {
		require.NotEmpty(t, protocol.WorkflowNameProblem(bad), bad)
	}
}
