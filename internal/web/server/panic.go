package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

// surviving has a panic end its request alone, and told: package http would end it, too, but
// write what it knows of it where no one reads. How much of the answer is on its way is not known,
// so the connection ends.
func surviving(next http.Handler, opts *Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, _ := p.(error); !errors.Is(err, http.ErrAbortHandler) {
				opts.Logger.Error("a request over HTTP made the broker panic; its connection is closed",
					slog.String("path", r.URL.Path), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
				if opts.Panicked != nil {
					opts.Panicked()
				}
			}
			panic(http.ErrAbortHandler) // Of which package http says nothing.
		}()
		next.ServeHTTP(w, r)
	})
}
