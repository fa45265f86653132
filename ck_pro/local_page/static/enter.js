// Leaves the address with the key; the browser has the cookie now. Deep links stay.
location.replace("/" + location.hash);
