// A page opened from the file system may not start workers, and the search is one: there, run it in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.onmessage = this.onerror = this.onmessageerror = null;
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (sent) => {
        const data = structuredClone(sent); // as a worker would: what one side changes, the other does not see
        setTimeout(() => this.onmessage?.({ data }));
      };
      const script = inside.document.createElement("script");
      script.src = new URL(url, document.baseURI);
      script.onload = () => {
        for (const data of this.waiting.splice(0)) this.deliver(data);
        this.waiting = null;
      };
      script.onerror = () => this.onerror?.(new Event("error"));
      inside.document.head.append(script);
    }
    deliver(sent) {
      const data = structuredClone(sent);
      setTimeout(() => this.frame.contentWindow?.onmessage?.({ data }));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.deliver(data);
    }
    terminate() {
      this.frame.remove();
    }
  };
}
