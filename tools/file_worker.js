// Search works in a worker, and browsers start none from a file: there, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.scope = frame.contentWindow;
      this.waiting = [];
      this.scope.postMessage = (data) => this.tell(this, data);
      this.scope.importScripts = async (...urls) => {
        for (const each of urls) await this.load(each);
      };
      this.load(url).then(() => {
        this.waiting.forEach((data) => this.tell(this.scope, data));
        this.waiting = null;
      });
    }

    load(url) {
      const script = this.scope.document.createElement("script");
      script.src = new URL(url, location.href).href;
      return new Promise((done) => {
        script.onload = done;
        this.scope.document.body.appendChild(script);
      });
    }

    tell(target, data) {
      const event = new MessageEvent("message", { data });
      target.dispatchEvent(event);
      if (typeof target.onmessage === "function") target.onmessage(event);
    }

    postMessage(data) {
      this.waiting ? this.waiting.push(data) : this.tell(this.scope, data);
    }
  };
}
