package helper

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Main serves a client on stdin and stdout, and ends the program.
func Main(name string, open Open) {
	e, err := env.OS()
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = Serve(ctx, e, name, open)
		stop()
	}
	if err != nil {
		fmt.Fprintf(e.Stderr, "%s: %s\n", name, plaintext.Line(err.Error()))
		os.Exit(1)
	}
}
