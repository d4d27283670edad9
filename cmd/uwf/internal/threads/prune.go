package threads

import (
	ucli "github.com/urfave/cli/v2"
)

// threadPruneCommand is the store's prune: what it forgets are threads.
func (a Commands) threadPruneCommand() *ucli.Command { return a.StoreCLI().PruneCommand() }
