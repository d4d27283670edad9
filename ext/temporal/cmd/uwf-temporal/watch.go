package main

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/united-workforce/uwf/ext/temporal/slot"
)

func (cmd *command) watch(ctx context.Context, dialled client.Client, pool *slot.Pool, conf config) {
	<-ctx.Done()
}
