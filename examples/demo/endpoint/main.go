// Command endpoint simulates the demo's model. It answers the requests of the demo's agents from a script
// (script.go), as OpenAI chat completions. The agents' actions are real.
//
// It listens on a loopback port, prints its base URL as its only output, and exits when its standard input is
// closed, so that it never outlives the demo.
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

// serve serves requests until stdin is closed.
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
