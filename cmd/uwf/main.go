// Command uwf runs workflows of AI agents, one step at a time.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/util/env"
)

func main() {
	e, err := env.OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, "uwf:", err)
		os.Exit(1)
	}
	os.Exit(cli.Main(context.Background(), e))
}
