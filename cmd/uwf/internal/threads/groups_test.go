package threads

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// Every command stands under a heading of the help.
func TestEveryCommandHasAGroup(t *testing.T) {
	t.Parallel()
	for _, c := range (Commands{&app.App{}}).Command().Subcommands {
		require.NotEmpty(t, c.Category, c.Name)
	}
}
