package fault

import (
	"context"
	"errors"
)

// Ended gives the error of a step its code: that of the signal, if one ended it.
func Ended(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return Of(err)
}
