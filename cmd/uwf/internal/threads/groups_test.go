package threads

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// Every command stands under a heading of the help, and every entry is a command.
func TestEveryCommandHasAGroup(t *testing.T) {
	t.Parallel()
	var names []string
	for _, c := range New(&app.App{}).Command().Subcommands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	require.ElementsMatch(t, names, slices.Collect(maps.Keys(ofThreads())))
}
