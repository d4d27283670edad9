// Command endpoint plays the model of the demo. It is no model: it answers the
// requests of the demo's agents with a script (script.go), in the form of
// OpenAI's chat completions. What the agents do with its answers is real.
//
// It listens on a port of the loopback interface, prints its base URL as its
// only line of output, and ends when its standard input does, so that it never
// outlives the demo.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "endpoint:", err)
		os.Exit(1)
	}
}

// serve listens until stdin ends.
func serve(stdin io.Reader, stdout io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Fprintf(stdout, "http://%s/v1\n", l.Addr())
	failed := make(chan error, 1)
	go func() { failed <- http.Serve(l, handler()) }()
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, stdin)
		ended <- err
	}()
	select {
	case err := <-failed:
		return err
	case err := <-ended:
		return err
	}
}
